-- +goose Up
CREATE TABLE product (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    price_cents BIGINT NOT NULL,
    stock       BIGINT NOT NULL,
    fence       BIGINT NOT NULL DEFAULT 0
);
CREATE TABLE orders (
    id          TEXT PRIMARY KEY,
    product_id  TEXT NOT NULL REFERENCES product (id),
    quantity    BIGINT NOT NULL,
    status      TEXT NOT NULL,
    paid_by     BIGINT NOT NULL DEFAULT 0
);
CREATE TABLE payment (
    id          TEXT PRIMARY KEY,
    order_id    TEXT NOT NULL UNIQUE REFERENCES orders (id),
    cents       BIGINT NOT NULL
);
INSERT INTO product (id, name, price_cents, stock) VALUES
    ('P1', 'Teapot', 2900, 10),
    ('P2', 'Tea cup', 700, 40);
INSERT INTO orders (id, product_id, quantity, status) VALUES
    ('O1', 'P1', 2, 'new'),
    ('O2', 'P2', 6, 'new'),
    ('O3', 'P1', 100, 'new');

-- +goose Down
DROP TABLE payment;
DROP TABLE orders;
DROP TABLE product;
