/** The end of a chat's id, from its title. Pure. */

/** Letters without marks, digits and hyphens; empty if the title has none. */
export function slugOf(title: string): string {
  return title
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');
}
