-- A made-up table of 50,000 patients: nobody in it exists. The same seed gives the same rows.
SELECT setseed(0.42);

CREATE TABLE patients AS
WITH draws AS (
    SELECT
        i,
        random() AS age,
        random() AS place,
        random() AS day,
        random() AS job,
        random() AS sex,
        random() AS illness,
        random() AS income,
        random() AS known
    FROM generate_series(1, 50000) AS i
)
SELECT
    i AS patient_id,
    'P-' || lpad(CAST((i * 7919) % 1000003 AS text), 7, '0') AS insurance_number,
    CAST(18 + floor(72 * age * sqrt(age)) AS integer) AS age,
    CASE WHEN sex < 0.51 THEN 'F' WHEN sex < 0.99 THEN 'M' ELSE 'X' END AS sex,
    lpad(CAST(10000 + floor(90 * place * place) * 100 + floor(100 * job) AS text), 5, '0') AS zipcode,
    CAST(DATE '2022-01-01' + CAST(floor(1095 * day) AS integer) AS date) AS admitted,
    (ARRAY['clerk', 'nurse', 'teacher', 'driver', 'cook', 'engineer', 'farmer', 'retired'])[1 + CAST(floor(8 * job) AS integer)] AS job,
    CASE WHEN known < 0.04 THEN NULL ELSE round(CAST(12000 + 90000 * income * income AS numeric), 2) END AS income,
    (ARRAY['flu', 'flu', 'asthma', 'diabetes', 'fracture', 'heart disease', 'cancer', 'hepatitis'])[
        1 + CAST(floor(8 * illness) AS integer)
    ] AS disease,
    1 + (i * 31) % 12 AS ward
FROM draws;

COMMENT ON TABLE patients IS 'Made-up patients';
ALTER TABLE patients ADD PRIMARY KEY (patient_id), ADD UNIQUE (insurance_number);
ANALYZE patients;
