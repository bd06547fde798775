"""The lattice as people explore it: which generalizations satisfy the models, and what each costs."""
