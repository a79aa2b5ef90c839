/**
 * A person's record holds several sessions of the Signal protocol: a new one begins with the first send of a process,
 * and what they wrote before they knew of it still comes on an older one. libsignal tries to decrypt a message with one
 * session after the other, and also changes those that it fails with: the open session would move to a ratchet that
 * nobody else knows, and nothing that we write could be read any more. So the sessions it failed with are restored.
 */

/** A record as libsignal writes it; only what is needed here. */
interface Written {
  _sessions: Record<string, { indexInfo: { used: number } }>;
}

/** `after`, but with every session that did not decrypt the message as it was `before`. Other forms stay as they are. */
export function restoreUnused(before: unknown, after: unknown): unknown {
  if (!isWritten(before) || !isWritten(after)) return after;
  const sessions = Object.entries(after._sessions).map(([key, session]) => {
    const earlier = before._sessions[key];
    // libsignal counts up the one that decrypted it.
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
