/* The published versions. `docs/publish.py` fills the list; a site that was only built has none. */
const PUBLISHED = [];
