"""One reference per method, each written from the paper and the documentation."""
