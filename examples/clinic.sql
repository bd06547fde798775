-- A made-up clinic of three tables: 5,000 patients, their visits, and the wards. Nobody in it exists.
-- PostgreSQL and DuckDB run it as it is.
SELECT setseed(0.42);

CREATE SCHEMA clinic;
CREATE SCHEMA clinic_released;

CREATE TABLE clinic.wards (ward_id INTEGER PRIMARY KEY, name VARCHAR(20), beds INTEGER);
INSERT INTO clinic.wards VALUES
    (1, 'surgery', 40), (2, 'cardiology', 30), (3, 'oncology', 25), (4, 'maternity', 35), (5, 'paediatrics', 30);

CREATE TABLE clinic.patients (
    patient_id INTEGER PRIMARY KEY,
    insurance_number VARCHAR(20),
    born DATE,
    sex VARCHAR(1),
    zipcode INTEGER
);
INSERT INTO clinic.patients
SELECT
    draws.i,
    CAST(draws.i * 7919 % 1000003 AS VARCHAR(20)),
    DATE '1935-01-01' + CAST(floor(30000 * draws.born) AS INTEGER),
    CASE WHEN draws.sex < 0.51 THEN 'F' WHEN draws.sex < 0.99 THEN 'M' ELSE 'X' END,
    CAST(10000 + floor(90 * draws.place * draws.place) * 100 + floor(100 * draws.born) AS INTEGER)
FROM (SELECT CAST(s.i AS INTEGER) AS i, random() AS born, random() AS sex, random() AS place FROM generate_series(1, 5000) AS s (i)) AS draws;

CREATE TABLE clinic.visits (
    visit_id INTEGER PRIMARY KEY,
    patient_id INTEGER REFERENCES clinic.patients,
    ward_id INTEGER REFERENCES clinic.wards,
    admitted DATE,
    days INTEGER,
    diagnosis VARCHAR(20)
);
INSERT INTO clinic.visits
SELECT
    draws.i,
    CAST(1 + floor(5000 * draws.patient) AS INTEGER),
    CAST(1 + floor(5 * draws.ward) AS INTEGER),
    DATE '2023-01-01' + CAST(floor(1095 * draws.day) AS INTEGER),
    CAST(1 + floor(20 * draws.stay * draws.stay) AS INTEGER),
    CASE CAST(floor(6 * draws.illness) AS INTEGER)
        WHEN 0 THEN 'asthma' WHEN 1 THEN 'diabetes' WHEN 2 THEN 'fracture' WHEN 3 THEN 'heart disease' WHEN 4 THEN 'cancer'
        ELSE 'hepatitis' END
FROM (
    SELECT CAST(s.i AS INTEGER) AS i, random() AS patient, random() AS ward, random() AS day, random() AS stay, random() AS illness
    FROM generate_series(1, 20000) AS s (i)
) AS draws;
