/** In the order in which a persona heard the messages of a room; both fields are message ids. */
export interface Position {
  heardAfter: number;
  messageId: number;
}

export const BEGINNING: Position = { heardAfter: 0, messageId: 0 };

export const END: Position = { heardAfter: Number.MAX_SAFE_INTEGER, messageId: Number.MAX_SAFE_INTEGER };

export function isAfter(a: Position, b: Position): boolean {
  return a.heardAfter === b.heardAfter ? a.messageId > b.messageId : a.heardAfter > b.heardAfter;
}
