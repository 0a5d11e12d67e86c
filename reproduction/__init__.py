"""The experiments of Section 6 and Appendix C: plan → trials → records → tables, figures, page.

``plan`` says what to run, ``run`` makes records of it, everything else only reads records.
"""
