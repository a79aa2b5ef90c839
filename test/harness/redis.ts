/**
 * `describe` for tests that need a real Redis. Without it they are skipped with a message, or fail with
 * COTERIE_REQUIRE_SERVERS=1.
 */
import { describe } from 'vitest';
import { REDIS_PROGRAM, redisIsInstalled } from '../fakes/redis.js';

export const describeWithRedis = redisIsInstalled() ? describe : skipped();

function skipped(): typeof describe.skip {
  if (process.env.COTERIE_REQUIRE_SERVERS === '1') {
    throw new Error(`${REDIS_PROGRAM} is not installed, and COTERIE_REQUIRE_SERVERS=1 demands these tests`);
  }
  process.stderr.write(`${REDIS_PROGRAM} is not installed: the tests that need it are SKIPPED\n`);
  return describe.skip;
}
