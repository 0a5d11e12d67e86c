"""From the columns of a table to numbers: what each column is, and how it is encoded."""
