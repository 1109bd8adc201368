// Where the list of runs stood, for when its page comes back. Nothing shows it, so it is not reactive.

export const place = { scrollTop: 0 };
