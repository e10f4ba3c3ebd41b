"""What is made of records: reports, comparisons, the site, and results that others can check."""
