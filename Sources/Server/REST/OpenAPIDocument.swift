import ThicketProtocol

/// The description of all requests (OpenAPI 3.1) that `/openapi.yaml` gives out: `docs/openapi.yaml`, byte for byte.
enum OpenAPIDocument {
    static let text: String = [
        head, paths, buckets, accounts, keys, bundles, partners, components, answers, schemas, shapes,
    ].map { $0 + "\n" }.joined()

    static let response: HTTPResponse = .init(
        status: 200,
        fields: [.init("content-type", "application/yaml"), .init("access-control-allow-origin", "*")],
        body: Array(text.utf8))
}
