package cmd

// private does nothing: the profile folder is private by its access list.
func private() {}
