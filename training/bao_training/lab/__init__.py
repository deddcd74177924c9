"""Commands that each made one figure or table of a document; README.md lists them."""
