/** In the place of what the database refuses to keep. */
export const UNKEPT = { note: 'what was said could not be stored' };
