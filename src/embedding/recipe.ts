/**
 * How vectors are made that can be compared: by which model, with what before the texts, and how long. Many models
 * were trained with a prefix for questions and another for documents, which embedding servers do not add. Pure.
 */

export interface Recipe {
  model: string;
  /** What stands before a question, and before a text that is searched. */
  queryPrefix: string;
  documentPrefix: string;
  /** null: as long as the model makes them. */
  dimensions: number | null;
}

const TASK = 'Given a question, retrieve what was said or noted earlier that answers it';
const PASSAGES = 'Represent this sentence for searching relevant passages: ';

/** By the models' own pages; the first that fits. Names differ from server to server: `BAAI/bge-m3`, `bge-m3:latest`. */
const KNOWN: [name: RegExp, query: string, document: string][] = [
  [/nomic-embed/, 'search_query: ', 'search_document: '],
  [/e5.*instruct|e5-mistral|gte-qwen\d*.*instruct/, `Instruct: ${TASK}\nQuery: `, ''],
  [/(?:^|[^a-z])e5(?![a-z0-9])/, 'query: ', 'passage: '],
  [/qwen3-embedding/, `Instruct: ${TASK}\nQuery:`, ''],
  [/embedding-?gemma/, 'task: search result | query: ', 'title: none | text: '],
  [/bge-m3/, '', ''],
  [/bge-(?:small|base|large)-zh/, '为这个句子生成表示以用于检索相关文章：', ''],
  [/bge-(?:small|base|large)/, PASSAGES, ''],
  [/mxbai-embed/, PASSAGES, ''],
  [/arctic-embed.*(?:v2|2\.0)|arctic-embed2/, 'query: ', ''],
  [/arctic-embed/, PASSAGES, ''],
];

/** As the operator gives it; what is left out is what is known of the model. */
export interface GivenRecipe {
  model: string;
  queryPrefix?: string | null;
  documentPrefix?: string | null;
  dimensions?: number | null;
}

export function recipeOf({ model, dimensions, ...given }: GivenRecipe): Recipe {
  const [, query, document] = KNOWN.find(([name]) => name.test(model.toLowerCase())) ?? [null, '', ''];
  return {
    model,
    queryPrefix: given.queryPrefix ?? query,
    documentPrefix: given.documentPrefix ?? document,
    dimensions: dimensions ?? null,
  };
}

/** One name for all of it: vectors of another name are never compared. */
export function nameOf({ model, queryPrefix, documentPrefix, dimensions }: Recipe): string {
  if (queryPrefix === '' && documentPrefix === '' && dimensions === null) return model;
  return `${model}\n${JSON.stringify([queryPrefix, documentPrefix, dimensions])}`;
}

/** The recipe of a name that `nameOf` gave; null: it is none. */
export function readName(name: string): Recipe | null {
  const [model = '', rest] = name.split('\n');
  if (rest === undefined) return { model, queryPrefix: '', documentPrefix: '', dimensions: null };
  try {
    const [queryPrefix, documentPrefix, dimensions] = JSON.parse(rest) as [unknown, unknown, unknown];
    if (typeof queryPrefix !== 'string' || typeof documentPrefix !== 'string') return null;
    return {
      model,
      queryPrefix,
      documentPrefix,
      dimensions: typeof dimensions === 'number' ? dimensions : null,
    };
  } catch {
    return null;
  }
}
