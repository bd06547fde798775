"""Labels of released tables read back, for those who compute with them; docs/labels.md has the grammar."""
