"""The paper's tables and figures, run again; not part of the wheel."""
