/** `write_file` and `edit_file`: what a persona puts into its working folder, whole or not at all. */
import * as z from 'zod';
import { sizeInWords } from '../../core/bytes.js';
import type { Tool } from '../../core/tool.js';
import { done, failed } from '../results.js';
import { writeWithin } from './paths.js';
import type { Folders } from './places.js';
import { MOST_BYTES, readText } from './read-file.js';
import { writingInPlaces } from './run.js';
import { bytesOf, placesIn } from './text.js';

const path = z.string().describe('Relative to your working folder.');

const writeParameters = z.object({
  path,
  content: z.string().describe('The whole file; what stood there is replaced.'),
});

export function writeFile(folders: Folders): Tool<z.infer<typeof writeParameters>> {
  return {
    name: 'write_file',
    description: 'Writes a text file into your working folder; folders on the way to it are made.',
    hint: 'write files into a working folder of your own',
    parameters: writeParameters,
    risk: 'medium',
    execute: ({ path, content }, context) =>
      writingInPlaces(
        folders,
        context,
        async (places) => {
          const bytes = Buffer.from(content);
          if (bytes.length > MOST_BYTES) return failed(tooLarge(path));
          await writeWithin(places, path, bytes, { signal: context.signal });
          return done(`${path} was written (${sizeInWords(bytes.length)}).`);
        },
        { brings: false },
      ),
  };
}

const editParameters = z.object({
  path,
  old_string: z.string().min(1).describe('What stands there, exactly and in one place alone.'),
  new_string: z.string().describe('What is to stand there instead.'),
});

/** More places are not counted. */
const MOST_COUNTED = 100;

export function editFile(folders: Folders): Tool<z.infer<typeof editParameters>> {
  return {
    name: 'edit_file',
    description: 'Replaces one passage of a text file in your working folder.',
    hint: 'change a passage of a file',
    parameters: editParameters,
    risk: 'medium',
    execute: ({ path, old_string, new_string }, context) =>
      writingInPlaces(
        folders,
        context,
        async (places) => {
          const { text, bom, bytes: expected } = await readText(places, path);
          const [wanted, put] = withEndsOf(text, old_string, new_string);
          const found = placesIn(text, wanted, MOST_COUNTED);
          const [at] = found;
          if (at === undefined) {
            return failed(
              `Nothing was changed: old_string does not stand in ${path}. It has to match exactly.`,
            );
          }
          if (found.length > 1) {
            const times =
              found.length === MOST_COUNTED ? `${MOST_COUNTED} times or more` : `${found.length} times`;
            return failed(
              `Nothing was changed: old_string stands ${times} in ${path}. Give more of what stands around the place.`,
            );
          }
          const changed = text.slice(0, at) + put + text.slice(at + wanted.length);
          const bytes = bytesOf({ text: changed, bom });
          if (bytes.length > MOST_BYTES) return failed(tooLarge(path));
          const outcome = await writeWithin(places, path, bytes, { signal: context.signal, expected });
          return outcome === 'written'
            ? done(`${path} was changed.`)
            : failed(`Nothing was changed: ${path} has changed meanwhile. Read it again.`);
        },
        { brings: false },
      ),
  };
}

/** Models write line ends as \n, also of a file whose lines all end with \r\n. */
function withEndsOf(text: string, wanted: string, put: string): [wanted: string, put: string] {
  if (!text.includes('\r\n') || wanted.includes('\r') || /(?<!\r)\n/.test(text)) return [wanted, put];
  const inWindows = (words: string) => words.replace(/\r?\n/g, '\r\n');
  return [inWindows(wanted), inWindows(put)];
}

function tooLarge(path: string): string {
  return `Nothing was written: ${path} would have more than ${sizeInWords(MOST_BYTES)}.`;
}
