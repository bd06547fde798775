"""Quality models of generalizations, by whose scores full-domain searches choose."""
