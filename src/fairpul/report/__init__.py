"""Audits and rules as text and pages."""
