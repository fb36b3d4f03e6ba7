"""Files of these tests lie in memory where that can be."""

from memory_files import tmp_path as tmp_path
