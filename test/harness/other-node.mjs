/**
 * Loaded before the gateway by `NODE_OPTIONS=--import`: native modules whose file's name holds OTHER_NODE fail to load, with
 * the words that Node has for one that was built for another version of it (src/node_binding.cc).
 */
const { OTHER_NODE } = process.env;
const { dlopen } = process;
process.dlopen = (module, file, ...rest) => {
  if (!OTHER_NODE || !String(file).includes(OTHER_NODE)) return dlopen(module, file, ...rest);
  throw Object.assign(
    new Error(
      `The module '${file}'\nwas compiled against a different Node.js version using\nNODE_MODULE_VERSION 93. This version of Node.js requires\nNODE_MODULE_VERSION ${process.versions.modules}. Please try re-compiling or re-installing\nthe module (for instance, using \`npm rebuild\` or \`npm install\`).`,
    ),
    { code: 'ERR_DLOPEN_FAILED' },
  );
};
