import ThicketProtocol

/// The description of all requests (OpenAPI 3.1) served at `/openapi.yaml`: `docs/openapi.yaml`, byte for byte. The
/// link beside this file lets SwiftPM embed it (`.embedInCode` in Package.swift), so that the binary needs no other
/// file.
enum OpenAPIDocument {
    static let response = HTTPResponse(
        status: 200,
        fields: [.init("content-type", "application/yaml"), .init("access-control-allow-origin", "*")],
        body: PackageResources.openapi_yaml)
}
