import ThicketProtocol

/// The description of the data API (OpenAPI 3.1) that `/openapi.yaml` gives out: `docs/openapi.yaml`, byte for byte.
enum OpenAPIDocument {
    static let text: String = [head, paths, components, schemas].map { $0 + "\n" }.joined()

    static let response: HTTPResponse = .init(
        status: 200,
        fields: [.init("content-type", "application/yaml"), .init("access-control-allow-origin", "*")],
        body: Array(text.utf8))
}
