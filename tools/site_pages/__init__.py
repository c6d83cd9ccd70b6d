"""What `make docs` makes of docstrings, headers and texts: the pages of the site, in Markdown."""
