import ThicketProtocol

/// The description of all requests (OpenAPI 3.1) that `/openapi.yaml` gives out: `docs/openapi.yaml`, byte for byte.
/// The link beside this file lets SwiftPM compile it in (`.embedInCode` in Package.swift), so that the binary alone has
/// it.
enum OpenAPIDocument {
    static let response = HTTPResponse(
        status: 200,
        fields: [.init("content-type", "application/yaml"), .init("access-control-allow-origin", "*")],
        body: PackageResources.openapi_yaml)
}
