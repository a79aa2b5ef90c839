/** A file as Markdown, up to where a prompt is cut, and the rest. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { useTexts } from '../app.ts';
import { Markdown } from '../kit/markdown.tsx';
import { filled } from '../texts/texts.ts';
import { matterOf, type Shown } from './budget.ts';

export function Preview({ text, shown, line }: { text: string; shown: Shown; line?: string | undefined }) {
  const { memory } = useTexts();
  const region = useRef<HTMLElement>(null);
  const [isMissing, setMissing] = useState(false);
  useEffect(() => {
    if (line === undefined || region.current === null) return;
    const found = blockWith(region.current, line);
    found?.classList.add('found');
    found?.scrollIntoView({ block: 'center' });
    setMissing(found === null);
    return () => found?.classList.remove('found');
  }, [line, text]);
  const { matter, body } = matterOf(text);
  const start = text.length - body.length;
  const cutAt = shown.cutAt === null ? null : Math.max(0, shown.cutAt - start);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also for those without a mouse.
    <section ref={region} class="preview" aria-label={memory.preview} tabIndex={0}>
      {isMissing && <p class="note">{memory.lineGone}</p>}
      {matter !== null && matter !== '' && <pre class="matter">{matter.trimEnd()}</pre>}
      {text.trim() === '' && <p class="soft">{memory.empty}</p>}
      <Markdown text={cutAt === null ? body : body.slice(0, cutAt)} />
      {cutAt !== null && (
        <>
          <p class="cut">{filled(memory.cut, { line: shown.line })}</p>
          <div class="beyond">
            <Markdown text={body.slice(cutAt)} />
          </div>
        </>
      )}
    </section>
  );
}

/** The innermost block that holds these words of a file; null if none does. */
function blockWith(region: HTMLElement, line: string): Element | null {
  const wanted = wordsOf(line.replace(/^\s*(?:#{1,6}\s|[-*+]\s|\d+[.)]\s|>\s)*/, ''));
  if (wanted === '') return null;
  const blocks = [...region.querySelectorAll('li, p, h1, h2, h3, h4, h5, h6, td, pre')];
  return blocks.findLast((block) => wordsOf(block.textContent).includes(wanted)) ?? null;
}

/** Letters and digits: marks of Markdown are not shown. */
function wordsOf(text: string): string {
  return text.replace(/[^\p{L}\p{N}]+/gu, ' ').trim();
}
