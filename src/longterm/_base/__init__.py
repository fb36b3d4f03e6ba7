"""What every subpackage shares and none is about: arrays, validation, display, files, progress."""
