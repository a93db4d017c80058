import CQRCode

/// A QR code of a few digits, drawn with half blocks: two rows of modules in one line of a terminal.
struct QRCode: Sendable, Equatable {
    /// Light modules on each side, which readers need to find the code.
    static let quietZone = 4

    /// Modules on each side.
    let width: Int
    /// Row by row.
    private let modules: [Bool]

    /// - Parameter text: ASCII without zero bytes. Digits alone give the smallest code.
    /// - Returns: nil for a text that is too long for a code.
    init?(_ text: String) {
        guard let code = QRcode_encodeString(text, 0, QR_ECLEVEL_M, QR_MODE_8, 1) else { return nil }
        defer { QRcode_free(code) }
        width = Int(code.pointee.width)
        let bytes = UnsafeBufferPointer(start: code.pointee.data, count: width * width)
        modules = bytes.map { $0 & 1 == 1 }
    }

    /// Whether a module is dark. Everything around the code is light.
    func isDark(_ row: Int, _ column: Int) -> Bool {
        guard (0..<width).contains(row), (0..<width).contains(column) else { return false }
        return modules[row * width + column]
    }

    /// Columns of a terminal that a line needs.
    var columns: Int { width + 2 * Self.quietZone }

    /// The lines, in black and white whatever the colors of the terminal are.
    var lines: [String] {
        let range = -Self.quietZone..<width + Self.quietZone
        return stride(from: range.lowerBound, to: range.upperBound, by: 2).map { row in
            let blocks = range.map { Self.block(isDark(row, $0), isDark(row + 1, $0)) }
            return Self.blackAndWhite + blocks.joined() + Self.usual
        }
    }

    /// Light modules are drawn, on a dark background.
    private static func block(_ isUpperDark: Bool, _ isLowerDark: Bool) -> String {
        switch (isUpperDark, isLowerDark) {
        case (false, false): "█"
        case (false, true): "▀"
        case (true, false): "▄"
        case (true, true): " "
        }
    }

    private static let blackAndWhite = "\u{1B}[40;97m"
    private static let usual = "\u{1B}[0m"
}
