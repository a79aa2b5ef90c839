# coterie in a container: built with the tools that SQLite's binding may need, run without them.
#
#   docker build -t coterie .
#   docker run --stop-timeout 40 -v coterie-data:/app/data -v coterie-groups:/app/groups \
#     -v ./config.yaml:/app/config.yaml:ro -e TELEGRAM_TOKEN -e MODEL_API_KEY coterie
#
# or compose.yaml. Docker kills ten seconds after a stop unless it is told to wait longer than shutdown_seconds (20).
# Node 24 is maintained until April 2028.

FROM node:24-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends python3 make g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts && npm rebuild better-sqlite3
COPY tsconfig.json tsconfig.build.json build.js ./
COPY src src
RUN npm run build && npm prune --omit=dev --ignore-scripts

FROM node:24-slim
ENV NODE_ENV=production
# Node is no init: it would leave behind what servers of tools started, and pass no signal on.
RUN apt-get update && apt-get install -y --no-install-recommends tini && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json config.example.yaml LICENSE ./
COPY migrations migrations
COPY groups groups
RUN mkdir -p data && chown -R node:node data groups
USER node
VOLUME ["/app/data", "/app/groups"]
# Loopback inside the container; to publish it, set board.host to 0.0.0.0 and a board.token.
EXPOSE 8420
HEALTHCHECK --interval=30s --timeout=5s --start-period=15s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8420/health').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/tini", "--", "node", "dist/main.js"]
CMD ["start"]
