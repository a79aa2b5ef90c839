/**
 * A person's record holds several sessions: a new one is begun with each first send of a process, and what they wrote
 * before they knew of it comes on an older one. libsignal tries a message on one after the other, and leaves its marks
 * on those that it did not fit: the open session would be moved to a ratchet that nobody else knows, and nothing that
 * we write could be read any more. So what did not fit is put back as it was.
 */

/** A record as libsignal writes it; only what is needed here. */
interface Written {
  _sessions: Record<string, { indexInfo: { used: number } }>;
}

/** `after` with every session that the message did not fit as it stands in `before`. Other forms stay as they are. */
export function withoutMarks(before: unknown, after: unknown): unknown {
  if (!isWritten(before) || !isWritten(after)) return after;
  const sessions = Object.entries(after._sessions).map(([key, session]) => {
    const earlier = before._sessions[key];
    // The one that it fitted is marked as used.
    return [key, earlier?.indexInfo.used === session.indexInfo.used ? earlier : session] as const;
  });
  return { ...after, _sessions: Object.fromEntries(sessions) };
}

function isWritten(record: unknown): record is Written {
  if (typeof record !== 'object' || record === null || !('_sessions' in record)) return false;
  const sessions: unknown = record._sessions;
  return (
    typeof sessions === 'object' &&
    sessions !== null &&
    Object.values(sessions).every((session) => typeof session?.indexInfo?.used === 'number')
  );
}
