/// Proxies whose word about their clients' addresses is taken.
public struct TrustedProxies: Sendable, Equatable {
    /// None: nobody is believed.
    public let networks: [IPNetwork]

    public init(_ networks: [IPNetwork] = []) { self.networks = networks }

    /// Networks in one list at most.
    public static let networksMax = 64

    /// Reads `none` or networks with commas between.
    /// - Returns: the list, or what is wrong with the text.
    public static func parse(_ text: String) -> Result<TrustedProxies, Problem> {
        if text.utf8.elementsEqual("none".utf8) { return .success(.init()) }
        var networks = [IPNetwork]()
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let word = String(decoding: HTTPText.trimmed(Array(part.utf8)[...]), as: UTF8.self)
            guard let network = IPNetwork(word) else {
                let shown = String(String.UnicodeScalarView(word.unicodeScalars.prefix(60)))
                return .failure(
                    Problem(
                        text:
                            "'\(shown)' is neither an address nor a network such as 10.0.0.0/8, whose other bits are 0")
                )
            }
            networks.append(network)
        }
        guard networks.count <= networksMax else {
            return .failure(Problem(text: "names more than \(networksMax) networks"))
        }
        return .success(.init(networks))
    }

    /// What is wrong with a list, for whoever wrote it.
    public struct Problem: Error, Equatable {
        public let text: String
    }

    public var isEmpty: Bool { networks.isEmpty }
    public func contains(_ address: IPAddress) -> Bool { networks.contains { $0.contains(address) } }

    /// Entries of `X-Forwarded-For` that are looked at.
    private static let hopsMax = 32

    /// Whose request it is: the peer itself, unless it is one of the proxies. Each proxy adds the address it was spoken
    /// to from at the end of `X-Forwarded-For`, so the list is read from there, and the first address that is no
    /// proxy's is the client's. What stands before it may be anybody's invention, and is not looked at.
    ///
    /// - Parameters:
    ///   - peer: who speaks to us.
    ///   - fields: of the request.
    public func client(of peer: IPAddress, _ fields: HTTPFields) -> IPAddress {
        guard !isEmpty, contains(peer) else { return peer }
        var client = peer
        var hops = 0
        for field in fields.all.reversed() where field.name.utf8.elementsEqual("x-forwarded-for".utf8) {
            let entries: [Substring] = field.value.split(separator: ",", omittingEmptySubsequences: false)
            for entry in entries.reversed() {
                hops += 1
                // A proxy that wrote no address does not know its client: then it stands for it.
                guard hops <= Self.hopsMax, let address = Self.address(entry) else { return client }
                client = address
                guard contains(address) else { return address }
            }
        }
        return client
    }

    /// `192.0.2.1`, `2001:db8::1`, and with a port: `192.0.2.1:80`, `[2001:db8::1]:80`.
    private static func address(_ entry: Substring) -> IPAddress? {
        var word = Substring(decoding: HTTPText.trimmed(Array(entry.utf8)[...]), as: UTF8.self)
        if word.utf8.first == UInt8(ascii: "[") {
            guard let end = word.utf8.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            let rest: Substring = word[word.utf8.index(after: end)...]
            guard rest.isEmpty || isPort(rest) else { return nil }
            word = word[word.utf8.index(after: word.startIndex)..<end]
            return word.utf8.contains(UInt8(ascii: ":")) ? IPAddress(word) : nil
        }
        if word.utf8.count(where: { $0 == UInt8(ascii: ":") }) == 1,
            let colon = word.utf8.firstIndex(of: UInt8(ascii: ":"))
        {
            guard isPort(word[colon...]) else { return nil }
            word = word[..<colon]
        }
        return IPAddress(word)
    }

    private static func isPort(_ text: Substring) -> Bool {
        (2...6).contains(text.utf8.count) && text.utf8.first == UInt8(ascii: ":")
            && text.utf8.dropFirst().allSatisfy(HTTPText.isDigit)
    }
}
