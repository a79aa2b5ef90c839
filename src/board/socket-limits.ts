/** How much the sockets may cost. */
export interface SocketLimits {
  /** At once. */
  most: number;
  /** How often each is asked whether it is still there; who has not answered by the next time is dropped. */
  heartbeatMs: number;
  /** What one may leave unread. */
  unreadBytes: number;
}

export const SOCKET_LIMITS: SocketLimits = { most: 256, heartbeatMs: 30_000, unreadBytes: 8_000_000 };
