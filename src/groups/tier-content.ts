/** What a model writes into a tier, made fit to stand there. Pure. */
import { decode, encode, endsLine } from './bytes.js';
import { outline } from './outline.js';

/**
 * Content as it may stand under a tier's heading: plain line ends, trimmed, headings of level 1 and 2 lowered to
 * level 3, an open fence closed. So it can neither end its tier nor swallow the next.
 */
export function fitForTier(content: string): string {
  const plain = content.replace(/\r\n?/g, '\n').trim();
  const source = encode(plain);
  let lowered = '';
  let done = 0;
  for (const heading of outline(source, null).headings) {
    lowered += source.slice(done, heading.start);
    const title = decode(heading.title).trim();
    lowered +=
      (title === '' ? '###' : encode(`### ${title}`)) +
      (endsLine(source.slice(0, heading.bodyStart)) ? '\n' : '');
    done = heading.bodyStart;
  }
  lowered += source.slice(done);
  const open = outline(lowered, null).openFences[0];
  return decode(open ? `${lowered}\n${open.closer}` : lowered);
}
