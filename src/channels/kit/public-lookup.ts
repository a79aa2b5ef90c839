/**
 * Looks a name up for a connection, and gives only addresses of public servers. As it is asked by the socket itself,
 * what was looked at is what is connected to: a name that leads elsewhere the next time gains nothing.
 */
import { lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { isPublicAddress, PRIVATE } from '../../core/addresses.js';

/** A link that is not followed, and never will be. Its message says why, without the link. */
export class NotFollowed extends Error {}

/** `resolve`: the system's, as a socket would ask it. */
export function publicLookup(resolve: typeof lookup = lookup): LookupFunction {
  return (name, options, done) => {
    resolve(name, { ...options, all: true }, (error, found) => {
      if (error) return done(error, '');
      const open = found.filter(({ address }) => isPublicAddress(address));
      const [first] = open;
      if (first === undefined) return done(new NotFollowed(PRIVATE), '');
      if (options.all) done(null, open);
      else done(null, first.address, first.family);
    });
  };
}
