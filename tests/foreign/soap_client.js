// A worker written with npm's `soap`: node soap_client.js WSDL TOKEN. Prints what it was told as JSON.
"use strict";

const soap = require("soap");

async function work(wsdl, token) {
  const client = await soap.createClientAsync(wsdl);
  if (token) client.addHttpHeader("Authorization", `Bearer ${token}`);
  const call = async (name, message) => (await client[`${name}Async`](message))[0][`${name}Result`];

  const job = await call("getJob", { ident: "node-1", request: "1", wanted: 10 });
  const again = await call("getJob", { ident: "node-1", request: "1", wanted: 10 });
  const urls = job.urls.split("\n").map((row) => row.split("\t")[0]);
  const renewed = await call("renewJob", { ident: "node-1", job: job.job });
  const receipt = await call("sendAllData", {
    ident: "node-1",
    job: job.job,
    results: `${urls[0]}\tstored\t200\t1234`,
    found: `${urls[0]}a?x=1&y=<2>\t1\nhttp://příklad.example/é\t1`,
    hosts: "example.org\t192.0.2.1\t2.5",
    size: 4321,
  });
  const returned = await call("cExit", { ident: "node-1", job: job.job });
  const totals = await call("getTotals", {});
  const fault = await call("renewJob", { ident: "node-1", job: "999" }).catch((error) => ({
    code: error.root.Envelope.Body.Fault.faultcode,
    text: error.root.Envelope.Body.Fault.faultstring,
  }));
  return { job, again, urls, renewed, receipt, returned, totals, fault };
}

work(process.argv[2], process.argv[3])
  .then((told) => console.log(JSON.stringify(told)))
  .catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
