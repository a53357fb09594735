package import HTTPMessages
internal import HTTPTypes
internal import StateStore

/// The descriptions of stores. They are long, so that a thread that serves others makes, indents and compresses none.
extension Contract {
    /// Responds with a description of the store where it is there in the form that the request asks for.
    func document(_ document: StoreDocuments.Name, _ routed: RoutedRequest) throws(Problem) -> Plan {
        if let options = try onlyReads(routed.request) { return .respond(options) }
        let style = try Parameters(routed.target, known: document == .types ? [] : ["pretty"]).style()
        let request = DocumentRequest(
            document: document, store: routed.store, style: style,
            coding: style == .compact ? coding(of: routed.request) : nil, latest: routed.circumstances.latest,
            requestID: routed.circumstances.requestID)
        guard let known = documents.known(of: routed.store)?[document], isReady(known, for: request) else {
            return .document(request)
        }
        return .respond(response(to: request, known))
    }

    private func isReady(_ document: Encoded, for request: DocumentRequest) -> Bool {
        if request.style == .pretty { return document.isIndented }
        return coding(of: document, for: request).map { document.has($0.rawValue) } ?? true
    }

    private func coding(of document: Encoded, for request: DocumentRequest) -> ContentCoding? {
        document.json.count >= limits.compressedBytesMin ? request.coding : nil
    }

    /// The answer with a description of a store.
    ///
    /// It makes the description where no client that sees the same has asked for it, and the form that the request asks for
    /// where no other has: this takes milliseconds. Both are kept.
    package func response(to request: DocumentRequest) -> Response {
        let known = documents.documents(of: request.store) {
            ActionSchemas($0, schemas, limits, clientTypes: clientTypes).documents
        }
        let response = response(to: request, known[request.document])
        documents.trim()
        return response
    }

    private func response(to request: DocumentRequest, _ document: Encoded) -> Response {
        let coding = coding(of: document, for: request)
        var response = Response.json(
            of: request.style == .pretty
                ? document.indented()
                    // Without memory for the coding the answer has no memory either.
                : coding.map { coding in document.form(coding.rawValue) { coding.compressed($0) ?? [] } }
                    ?? document.body,
            latest: request.latest)
        if request.document == .types { response.fields[.contentType] = "text/plain; charset=utf-8" }
        if let coding {
            response.fields[.contentEncoding] = coding.rawValue
            response.fields[.vary] = "Accept-Encoding"
        }
        return response
    }
}
