/** kill -9 while three shards bring the messages of twenty rooms. */
import { expect, test } from 'vitest';
import { discordPlatform } from '../harness/discord.js';
import type { Place, Platform } from '../harness/platform.js';
import { killAtRandom, NONE } from './kills.js';

const SHARDS = 3;

/** Every fourth room stays a direct chat, on shard 0; the others are channels in the servers of all shards. */
function spread(place: Place): Place {
  return place.number % 4 === 0 ? place : { kind: 'group', number: place.number };
}

test('nothing is lost, out of order or said twice', async () => {
  const seed = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);
  const platform = await discordPlatform(SHARDS);
  const { discord } = platform;
  const spreading: Platform = {
    ...platform,
    say: (saying) => platform.say({ ...saying, in: spread(saying.in), mention: true }),
    shown: (place) => platform.shown(spread(place)),
    connected: () => discord.until(() => discord.sessions().connected === SHARDS, 'all shards', 60_000),
  };
  expect(await killAtRandom(spreading, { kills: 4, seed })).toMatchObject(NONE);
  const { identified, resumed, tooSoon } = discord.sessions();
  expect([identified >= SHARDS, resumed > SHARDS, tooSoon]).toEqual([true, true, 0]);
}, 240_000);
