import ThicketProtocol

/// The frames of a SockJS server before a transport wraps them (sockjs-protocol 0.3.3, "Protocol and framing").
enum SockJSFrame {
    /// The session is new.
    static let open = [UInt8(ascii: "o")]
    /// Sent after a silent period; keeps proxies from closing the connection.
    static let heartbeat = [UInt8(ascii: "h")]
    /// For a receiver that arrives while another one waits.
    static let busy = close(2010, "Another connection still open")
    /// For a receiver that arrives after another one broke off, when output sent to that one may be lost.
    static let interrupted = close(1002, "Connection interrupted")

    /// `a[…]` of messages that are already JSON strings.
    static func messages(_ elements: ArraySlice<[UInt8]>) -> [UInt8] {
        var frame = [UInt8]()
        frame.reserveCapacity(elements.reduce(3) { (sum: Int, element: [UInt8]) in sum + element.count + 1 })
        frame.append(contentsOf: [UInt8(ascii: "a"), UInt8(ascii: "[")])
        for (place, element) in elements.enumerated() {
            if place > 0 { frame.append(UInt8(ascii: ",")) }
            frame.append(contentsOf: element)
        }
        frame.append(UInt8(ascii: "]"))
        return frame
    }

    /// `c[code,"reason"]`.
    static func close(_ code: UInt16, _ reason: String) -> [UInt8] {
        var frame: [UInt8] = Array("c[\(code),".utf8)
        SockJSText.append(reason.utf8, to: &frame)
        frame.append(UInt8(ascii: "]"))
        return frame
    }
}
