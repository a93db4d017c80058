/// The complete search of the threats T1 and T2: canaries in each of their spellings, after 1 to 14,999 rounds of
/// SHA-256, reversed, and all of that also inside of deflated data and of base64 or hex, deflated or not.
public struct CanaryHunt: Sendable {
    private let search: CanarySearch
    private let chains: DigestChains?

    /// - Parameters:
    ///   - canaries: the secrets to find in all spellings.
    ///   - hashed: the secrets to find as rounds of SHA-256, too. 15,000 hashes each.
    public init(_ canaries: [Canary], hashed: [(name: String, secret: String)] = []) {
        search = CanarySearch(canaries)
        chains = hashed.isEmpty ? nil : DigestChains(hashed.map { ($0.name, Array($0.secret.utf8)) })
    }

    /// The findings, as lines for a person.
    public func findings(in bytes: [UInt8], place: String) -> [String] {
        let decoded = EncodedRuns.decoded(bytes)
        let layers = [
            ("", bytes), (", decoded", decoded), (", inflated", Inflated.everywhere(in: bytes)),
            (", decoded and inflated", Inflated.everywhere(in: decoded)),
        ]
        var found = [String]()
        for (layer, bytes) in layers {
            found += search.findings(in: bytes, place: place + layer)
            guard let chains else { continue }
            found += chains.findings(in: bytes, place: place + layer)
            found += chains.findings(in: bytes.reversed(), place: "\(place)\(layer), backwards")
        }
        return found
    }
}
