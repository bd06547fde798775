"""Methods of protection, each with all of it in one room; only the registry imports one."""
