import Testing
import ThicketAuth
import ThicketCrypto
import ThicketProtocol
import ThicketTestSupport

/// The third-party requests, answered by the service alone; PartnerServerTests sends them to a server.
@Suite("Partner requests: the published cases")
struct PartnerVectorTests {
    @Test("every request gets the published answer", .enabled(if: Vectors.has("jwt/requests.json")))
    func all() throws {
        let file: RequestVectors = try .load()
        #expect(file.cases.count >= 83)
        for each in file.cases {
            var service = PartnerService(directory: file.directory(), random: RandomBytes.make)
            let route: PartnerService.Route = try #require(PartnerService.route(of: each.path[...]), "\(each.name)")
            let outcome = service.answer(
                each.request, to: route, from: "192.0.2.1", now: each.now)
            each.check(outcome.response)
        }
    }
}
