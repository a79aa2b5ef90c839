/** The names of people that a platform writes into a text where somebody is mentioned: not the sender's own words. */

/** Only such a name could be taken for an address. */
const LIKE_AN_ADDRESS = /[.:]/;

export function mentioning(names: Iterable<string>): { mentions?: string[] } {
  const mentions = [...new Set(names)].filter((name) => LIKE_AN_ADDRESS.test(name));
  return mentions.length === 0 ? {} : { mentions };
}
