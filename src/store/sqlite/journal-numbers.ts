/** The numbers of the journal's entries, in SQL: each addition and each change of one takes the next. */

/** The newest number: of an entry that was added, or of one that changed later. Only the latter are in an index of their own. */
export const NEWEST_CHANGE = `max(coalesce((select max(n) from journal), 0),
  coalesce((select max(changed) from journal where changed <> n), 0))`;
export const NEXT = `(${NEWEST_CHANGE} + 1)`;
