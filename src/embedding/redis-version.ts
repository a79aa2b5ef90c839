/** A worker refuses a Redis that is too old for it, before it takes a job. */
import { Fault } from '../core/errors.js';
import type { RedisLink } from './redis-link.js';

/** BLMOVE and LMOVE came with 6.2. */
export async function refuseOldRedis({ redis, place }: RedisLink): Promise<void> {
  // Where asking is not allowed, the first job will tell.
  const info = await redis.info('server').catch((error: unknown) => {
    if (redis.status === 'ready') return '';
    throw error;
  });
  const [, version, major, minor] = /redis_version:((\d+)\.(\d+)\S*)/.exec(info) ?? [];
  if (version === undefined || Number(major) > 6 || (Number(major) === 6 && Number(minor) >= 2)) return;
  throw new Fault(
    'configuration',
    `Redis at ${place} is ${version}; the worker needs 6.2 or newer, because it takes jobs with BLMOVE.`,
  );
}
