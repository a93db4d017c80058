import Testing
import ThicketProtocol

@Suite("HTTP times")
struct HTTPTimeTests {
    @Test("times are written as HTTP requires, over leap days and the turn of centuries")
    func texts() {
        let cases: [(Int64, String)] = [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"), (951_868_799, "Tue, 29 Feb 2000 23:59:59 GMT"),
            (1_709_164_800, "Thu, 29 Feb 2024 00:00:00 GMT"), (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"), (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (.max, "Fri, 31 Dec 9999 23:59:59 GMT"), (-1, "Thu, 01 Jan 1970 00:00:00 GMT"),
        ]
        for (seconds, text) in cases { #expect(HTTPTime.text(unixSeconds: seconds) == text) }
    }
}
