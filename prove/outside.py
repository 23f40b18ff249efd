"""Pays some thousand payouts beside `npm run up`, with nothing of payoutd's.

Commands go out and results come in by librdkafka and Confluent's Avro codec, and what became of each payout is judged by the
books of the sandbox alone. Every codec of Kafka is used, some commands are sent twice, and some accounts are such that
the sandbox fails, never calls back, never answers, or contradicts itself.

    pip install 'confluent-kafka[avro,schemaregistry]' requests
    python prove/outside.py --count 3000        # in the folder where `npm run up` runs

Exits with 1 if anything differs.
"""

import argparse
import hashlib
import json
import re
import secrets
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import requests
from confluent_kafka import DeserializingConsumer, SerializingProducer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import StringDeserializer, StringSerializer

ROOT = Path(__file__).parent.parent
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
IFSC = "HDFC0001234"
# Beginnings of account numbers that the sandbox treats in its own ways (devkit/sandbox/README.md).
ODD = ["9999000001", "9999000002", "9999000003", "9999000005", "9999000012"]
PATIENCE_S = 300
# For an end that is told twice, or changed.
LINGER_S = 10


def settings() -> dict[str, str]:
    lines = (ROOT / ".payoutd/stack.env").read_text().splitlines()
    return dict(re.match(r"(\w+)='?(.*?)'?$", line).groups() for line in lines if "=" in line)


def produce(env: dict[str, str], registry: SchemaRegistryClient, count: int) -> dict[str, dict]:
    schema = (ROOT / "schemas/PayoutRequested.avsc").read_text()
    defaults = {field["name"]: field.get("default") for field in json.loads(schema)["fields"]}
    serializer = AvroSerializer(
        registry,
        schema,
        conf={
            "auto.register.schemas": False,
            "subject.name.strategy": lambda context, record: f"{context.topic}-{record}",
        },
    )
    merchant, run = env["MERCHANT_ID"], secrets.token_hex(3)
    asked = {}
    for codec in CODECS:
        failures = []
        producer = SerializingProducer(
            {
                "bootstrap.servers": env["KAFKA_BROKERS"],
                "compression.type": codec,
                "linger.ms": 20,
                "acks": "all",
                "key.serializer": StringSerializer(),
                "value.serializer": serializer,
            }
        )
        for _ in range(count // len(CODECS)):
            number = len(asked)
            begin = ODD[number // 10 % len(ODD)] if number % 10 == 0 else "5010"
            command = defaults | {
                "payoutId": f"{run}-{number}",
                "merchantId": merchant,
                "amount": 100 * (100 + number % 500),
                "accountName": "Asha Rao",
                "accountNo": f"{begin}{int(run, 16):08d}{number:06d}",
                "ifsc": IFSC,
            }
            asked[command["payoutId"]] = command
            for _ in range(2 if number % 50 == 0 else 1):
                producer.produce(
                    "payout.commands",
                    key=f"{merchant}:{command['payoutId']}",
                    value=command,
                    on_delivery=lambda error, _: error and failures.append(error),
                )
            producer.poll(0)
        if producer.flush(60) or failures:
            sys.exit(f"Kafka did not take all commands: {failures[:3]}")
    return asked


def read_results(env: dict[str, str], registry: SchemaRegistryClient, asked: dict[str, dict]) -> dict[str, list[dict]]:
    consumer = DeserializingConsumer(
        {
            "bootstrap.servers": env["KAFKA_BROKERS"],
            "group.id": f"outside-{secrets.token_hex(4)}",
            "auto.offset.reset": "earliest",
            "key.deserializer": StringDeserializer(),
            "value.deserializer": AvroDeserializer(registry),
        }
    )
    consumer.subscribe(["payout.results"])
    results = defaultdict(list)
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        message = consumer.poll(1)
        if message is None or message.error():
            continue
        result = message.value()
        if result["payoutId"] in asked:
            results[result["payoutId"]].append(result)
            if len(results) == len(asked):
                until = min(until, time.monotonic() + LINGER_S)
    consumer.close()
    return results


def wrong_with(command: dict, results: list[dict], order: dict | None) -> str | None:
    if not results:
        return "has no result"
    if any(result != results[0] for result in results):
        return f"has several results: {results}"
    [result, *_] = results
    times_paid = order["timesPaid"] if order else 0
    if result["status"] != "PAID":
        return None if times_paid == 0 else f"is {result['status']}, and was paid"
    if times_paid != 1:
        return f"is PAID, and was paid {times_paid} times"
    payee = hashlib.sha256(f"{command['accountNo']}\n{IFSC}".encode()).hexdigest()
    told = (result["amount"], result["utr"], payee)
    there = (int(order["amount"]), order["utr"], order["payee"])
    return None if told == there and told[0] == command["amount"] else f"differs: {told} here, {there} there"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=3000)
    count = parser.parse_args().count
    env = settings()
    registry = SchemaRegistryClient({"url": env["SCHEMA_REGISTRY_URL"]})
    asked = produce(env, registry, count)
    print(f"{len(asked)} payouts asked for")
    results = read_results(env, registry, asked)
    print(f"results: {dict(Counter(told[0]['status'] for told in results.values()))}")
    url = f"{env['GATEWAY_BASE_URL']}/_sandbox/orders?mchId={env['GATEWAY_MCH_ID']}"
    orders = {order["mchOrderNo"]: order for order in map(json.loads, requests.get(url, timeout=60).text.splitlines())}
    wrong = [f"{order['mchOrderNo']} was paid {order['timesPaid']} times" for order in orders.values() if order["timesPaid"] > 1]
    for payout_id, command in asked.items():
        told = results[payout_id]
        fault = wrong_with(command, told, orders.get(told[0]["mchOrderNo"]) if told else None)
        if fault:
            wrong.append(f"{payout_id} {fault}")
    for line in wrong[:20]:
        print(line)
    print(f"{len(orders)} orders at the gateway, {len(wrong)} wrong")
    sys.exit(1 if wrong else 0)


main()
