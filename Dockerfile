FROM node:24-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts

FROM node:24-slim
# In a container the loopback address would be out of everybody's reach.
ENV NODE_ENV=production PUBLIC_HOST=0.0.0.0 INTERNAL_HOST=0.0.0.0
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
# .dockerignore names what this is.
COPY . .
# Where ingest and the sandbox keep their files. A list of refused rows appears beside the payroll file.
RUN mkdir /data && chown 1000:1000 /data examples
WORKDIR /data
# By number, so that Kubernetes can tell that it is not root.
USER 1000:1000
EXPOSE 8080 9464
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.INTERNAL_PORT || 9464}/readyz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "--min-semi-space-size=16", "--max-semi-space-size=16", "/app/bin/payoutd.ts"]
CMD ["serve"]
