"""One module per generated data set; each has `records()`, which yields raw records in the form of its file."""
