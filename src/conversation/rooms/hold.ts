/** Step 3 of the route: a room is claimed when there is slow work before a turn, so that nobody else does the same. */
import type { Claim } from '../../core/route-store.js';
import { leaseOf } from '../services.js';
import type { RoomServices } from './room-services.js';
import type { RoomRun } from './scheduler.js';

/** null when another process was faster, or something else came in. */
export async function hold(
  services: RoomServices,
  run: RoomRun,
  seen: { room: string; fence: number },
): Promise<Claim | null> {
  if (run.claim) return run.claim;
  const claimed = await services.store.claim(seen, leaseOf(services));
  run.claim = claimed?.claim ?? null;
  return run.claim;
}
