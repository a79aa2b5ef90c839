/** The thread that converts a page to text: some keep a parser busy for minutes. Built as a separate file. */
import { parentPort, workerData } from 'node:worker_threads';
import { compile, type DomNode } from 'html-to-text';
import { cutAt } from '../../core/cut.js';

export interface PageTask {
  html: string;
  /** Base of relative links. */
  address: string;
  mostChars: number;
}

export interface PageText {
  title: string;
  text: string;
  chars: number;
}

const TITLE_CHARS = 300;
/** A longer link is mostly data. */
const LINK_CHARS = 1_000;
const DEEPEST = 200;

/** Elements that the page does not show, as far as is known without style sheets. */
const HIDDEN = [
  ...['script', 'style', 'template', 'iframe', 'frame', 'object', 'embed', 'canvas', 'svg', 'audio', 'video'],
  ...['select', 'datalist', '[hidden]', '[style*="display:none"i]', '[style*="display: none"i]'],
  ...['[style*="visibility:hidden"i]', '[style*="visibility: hidden"i]', 'input', 'textarea'],
];

function textIn({ data = '', children = [] }: DomNode): string {
  return data + children.map(textIn).join('');
}

function readPage({ html, address, mostChars }: PageTask): PageText {
  let title = '';
  const convert = compile({
    wordwrap: false,
    // The title is outside of the body, so everything is searched.
    baseElements: { selectors: ['none-of-these'], returnDomByDefault: true },
    limits: { maxDepth: DEEPEST, ellipsis: ' [what is nested deeper than 200 elements is left out] ' },
    formatters: {
      noteTitle: (element: DomNode) => {
        if (title === '') title = textIn(element).replace(/\s+/g, ' ').trim();
      },
    },
    selectors: [
      { selector: 'title', format: 'noteTitle' },
      {
        selector: 'a',
        options: {
          linkBrackets: ['(', ')'],
          hideLinkHrefIfSameAsText: true,
          noAnchorUrl: true,
          pathRewrite: (href: string) => linkFrom(href, address),
        },
      },
      { selector: 'img', options: { pathRewrite: () => '', linkBrackets: ['', ''] } },
      ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((selector) => ({
        selector,
        options: { uppercase: false },
      })),
      ...HIDDEN.map((selector) => ({ selector, format: 'skip' })),
    ],
  });
  const text = convert(html).trim();
  return { title: cutAt(title, TITLE_CHARS), text: cutAt(text, mostChars), chars: text.length };
}

/** The rest of a mailto link. */
const MAIL = /^[^\s/?#:@]{1,64}@[^\s/?#:@]{1,255}$/;

/** Absolute, so that it can be fetched; empty for any address that is not on the web. */
function linkFrom(href: string, address: string): string {
  if (MAIL.test(href)) return href;
  if (href.length > LINK_CHARS || !URL.canParse(href, address)) return '';
  const { protocol, href: whole } = new URL(href, address);
  return /^https?:$/.test(protocol) && whole.length <= LINK_CHARS ? whole : '';
}

if (parentPort === null) throw new Error('this is no program: the gateway starts it as a thread');
parentPort.postMessage(readPage(workerData as PageTask));
